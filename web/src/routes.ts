/**
 * The pages, by the first part of their path. The program serves the page at these and nowhere
 * else (`crates/management/src/web.rs`, which holds its list against this one).
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

/** Where a page is, or one of its objects. */
export function to(page: PageName, ...parts: string[]): string {
  return `/${[page, ...parts].map(encodeURIComponent).join("/")}`;
}
