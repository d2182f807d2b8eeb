/** Light or dark: the preference of the system, or the choice made here. */
import { useSyncExternalStore } from "react";

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "holdfast-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function kept(): Theme {
  const found = localStorage.getItem(KEY);
  return THEMES.find((theme) => theme === found) ?? "auto";
}

let theme = kept();

/** Whether the page is dark. */
export const isDark = () => (theme === "auto" ? system.matches : theme === "dark");

function apply(): void {
  document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";
  for (const listener of listeners) listener();
}

/** Applies the last choice, and follows the system. */
export function startTheme(): void {
  system.addEventListener("change", apply);
  apply();
}

export function choose(next: Theme): void {
  theme = next;
  localStorage.setItem(KEY, next);
  apply();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export const useTheme = () => useSyncExternalStore(subscribe, () => theme);
export const useIsDark = () => useSyncExternalStore(subscribe, isDark);
