import { defineConfig } from "vitest/config";

/** Tests in a real browser: one after the other, each as long as a slow machine takes. */
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
