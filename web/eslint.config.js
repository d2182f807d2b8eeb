import js from "@eslint/js";
import a11y from "eslint-plugin-jsx-a11y";
import hooks from "eslint-plugin-react-hooks";
import { defineConfig } from "eslint/config";
import typescript from "typescript-eslint";

export default defineConfig(
  { ignores: ["dist", "node_modules", "src/lib/openapi.ts"] },
  js.configs.recommended,
  typescript.configs.strictTypeChecked,
  a11y.flatConfigs.recommended,
  hooks.configs.flat.recommended,
  {
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      "max-lines": ["error", 400],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      // The widget roles of tables that scroll, and of lines to be copied, need a place for focus.
      "jsx-a11y/no-noninteractive-tabindex": "off",
    },
  },
  { files: ["**/*.js", "**/*.mjs"], extends: [typescript.configs.disableTypeChecked] },
);
