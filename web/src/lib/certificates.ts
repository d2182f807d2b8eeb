/** Certificates of the array, as text and as what a browser shows of them. */

/** The name of the certificate of the web page and of all management. */
export const MANAGEMENT = "management";

/** The bytes of the first certificate of a PEM text; undefined if there is none. */
export function derOf(pem: string): Uint8Array<ArrayBuffer> | undefined {
  const found = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/.exec(pem);
  if (found?.[1] === undefined) return undefined;
  try {
    const text = atob(found[1].replaceAll(/\s/g, ""));
    return Uint8Array.from(text, (char) => char.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** The SHA-256 fingerprint of a certificate, as `serve` prints it; undefined if it has none. */
export async function fingerprintOf(pem: string): Promise<string | undefined> {
  const der = derOf(pem);
  // Browsers offer digests only to pages that came over TLS, or from this machine.
  if (der === undefined || !("subtle" in crypto)) return undefined;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", der));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The changes of a certificate that is filled in: what is empty stays as it is. */
export function filled<T extends Record<string, string | string[] | number | undefined>>(
  fields: T,
): Partial<T> {
  const given = Object.entries(fields).filter(
    ([, value]) => value !== undefined && value !== "" && !(Array.isArray(value) && !value.length),
  );
  return Object.fromEntries(given) as Partial<T>;
}
