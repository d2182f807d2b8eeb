/**
 * The pages, by the first part of their path. The program serves the page only at these
 * addresses (`crates/management/src/web.rs`; a test there compares its list with this one).
 */
export const PAGES = [
  "audit",
  "dashboard",
  "datastores",
  "health",
  "host-groups",
  "hosts",
  "pods",
  "protection",
  "settings",
  "snapshots",
  "volumes",
] as const;

export type PageName = (typeof PAGES)[number];

/** The address of a page, or of one of its objects. */
export function to(page: PageName, ...parts: string[]): string {
  return `/${[page, ...parts].map(encodeURIComponent).join("/")}`;
}
