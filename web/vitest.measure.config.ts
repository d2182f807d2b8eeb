import { defineConfig } from "vitest/config";

/** What `web/measure-pages` runs: it prints how long pages take, and judges that. */
export default defineConfig({
  test: {
    include: ["tests/**/*.measure.ts"],
    fileParallelism: false,
    testTimeout: 3_600_000,
    hookTimeout: 3_600_000,
    disableConsoleIntercept: true,
  },
});
