// Builds the page into three files with fixed names, which the Rust crate embeds.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

// The built script contains uPlot, whose license asks that its text goes along.
const license = readFileSync("node_modules/uplot/LICENSE", "utf8").trim();

export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    sourcemap: false,
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "studio.js",
        assetFileNames: "studio.[ext]",
        codeSplitting: false,
        postBanner: `/*! With uPlot:\n\n${license}\n*/`,
      },
    },
  },
});
