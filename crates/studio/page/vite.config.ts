// Builds the page into three files with fixed names, which the Rust crate embeds.
import { defineConfig } from "vite";

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
      },
    },
  },
});
