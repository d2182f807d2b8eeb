import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import "uplot/dist/uPlot.min.css";
import "./style/tokens.css";
import "./style/base.css";
import "./style/parts.css";
import { App } from "./app";
import { startTheme } from "./lib/theme";

startTheme();
const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
