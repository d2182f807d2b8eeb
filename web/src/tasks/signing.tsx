/** A signing request for the key of the certificate of the management address. */
import { useState } from "react";

import { request, rest } from "../lib/api";
import { filled, MANAGEMENT } from "../lib/certificates";
import * as cli from "../lib/cli";
import { words } from "../lib/format";
import type { Items, RestCertificate, RestSigningRequest } from "../lib/types";
import { TextField } from "../parts/fields";
import { Task } from "../parts/task";

const PATH = rest("certificates/certificate-signing-requests");

/** The texts of a subject: field, label, and hint. */
const TEXTS = [
  ["common_name", "Common name", "Such as array.example.com."],
  ["organization", "Organization", undefined],
  ["organizational_unit", "Organizational unit", undefined],
  ["country", "Country", "A code of two letters."],
  ["state", "State or province", undefined],
  ["locality", "Locality", undefined],
  ["email", "Email address", undefined],
] as const;
type Field = (typeof TEXTS)[number][0];

export function CreateSigningRequest(props: {
  certificate: RestCertificate;
  made: (request: string) => void;
  close: () => void;
}) {
  const { certificate, made, close } = props;
  const [texts, setTexts] = useState<Record<Field, string>>(() => {
    const { common_name, organization, organizational_unit, country } = certificate;
    const { state, locality, email } = certificate;
    return { common_name, organization, organizational_unit, country, state, locality, email };
  });
  const [names, setNames] = useState(certificate.subject_alternative_names.join(", "));
  const country = texts.country.trim();
  const isCountry = country === "" || /^[A-Za-z]{2}$/.test(country);
  const given = Object.entries(texts).map(([field, text]) => [field, text.trim()]);
  const body = {
    certificate: { name: MANAGEMENT },
    ...(Object.fromEntries(given) as typeof texts),
    ...filled({ subject_alternative_names: words(names) }),
  };
  const run = async () => {
    const { items } = await request<Items<RestSigningRequest>>("POST", PATH, body);
    made(items[0]?.certificate_signing_request ?? "");
    return "A signing request was created.";
  };
  return (
    <Task
      title="New signing request"
      submit="Create request"
      cli={[cli.api("POST", PATH, body)]}
      ready={isCountry}
      run={run}
      close={close}
    >
      <p>
        An authority signs the request, which is for the key in use. Import the certificate that it
        returns without a private key.
      </p>
      {TEXTS.map(([field, label, hint]) => (
        <TextField
          key={field}
          label={label}
          hint={hint}
          value={texts[field]}
          set={(text) => setTexts({ ...texts, [field]: text })}
          invalid={field === "country" && !isCountry}
        />
      ))}
      <TextField
        label="Alternative names"
        hint="Names and addresses, separated by spaces or commas. Empty: those of the certificate."
        value={names}
        set={setNames}
      />
    </Task>
  );
}
