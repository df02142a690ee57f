// Builds the script and the style of reports into two files, which the Rust crate of results embeds and writes into
// each page.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// The built script contains uPlot, whose license asks that its text goes along.
const license = readFileSync("node_modules/uplot/LICENSE", "utf8").trim();

export default defineConfig({
  build: {
    target: "es2022",
    outDir: "../../results/page-dist",
    emptyOutDir: true,
    sourcemap: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      input: "src/report/main.ts",
      output: {
        format: "iife",
        entryFileNames: "report.js",
        assetFileNames: "report.[ext]",
        codeSplitting: false,
        postBanner: `/*! With uPlot:\n\n${license}\n*/`,
      },
    },
  },
});
