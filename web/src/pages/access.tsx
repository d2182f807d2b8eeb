/** The banner before a login, and the certificate of the management address. */
import { useState } from "react";

import { useQuery } from "@tanstack/react-query";

import { fingerprintOf, MANAGEMENT } from "../lib/certificates";
import { time } from "../lib/format";
import { useAll } from "../lib/query";
import { mayAdminister, useSession } from "../lib/session";
import type { ArraySettings, RestCertificate } from "../lib/types";
import { Actions } from "../parts/actions";
import { TextToTake } from "../parts/copy";
import { Loaded, Notice } from "../parts/notice";
import { Card, Facts } from "../parts/page";
import {
  CreateCertificate,
  EditBanner,
  ImportCertificate,
  RemoveCertificate,
} from "../tasks/access";
import { CreateSigningRequest } from "../tasks/signing";

export function AccessCards({ settings }: { settings: ArraySettings }) {
  const certificates = useAll<RestCertificate>("certificates");
  return (
    <>
      <BannerCard settings={settings} />
      <Loaded query={certificates} what="certificates">
        {(found) => {
          const one = found.find(({ name }) => name === MANAGEMENT);
          return one ? (
            <CertificateCard certificate={one} />
          ) : (
            <Notice>The management address has no certificate.</Notice>
          );
        }}
      </Loaded>
    </>
  );
}

function BannerCard({ settings }: { settings: ArraySettings }) {
  const { role } = useSession();
  return (
    <Card
      title="Login banner"
      aside={
        mayAdminister(role) && (
          <Actions
            label="Login banner"
            actions={[
              {
                label: "Change banner",
                task: (close) => <EditBanner settings={settings} close={close} />,
              },
            ]}
          />
        )
      }
    >
      {settings.banner === "" ? (
        <p className="muted">No banner is shown before a login.</p>
      ) : (
        <p className="banner">{settings.banner}</p>
      )}
    </Card>
  );
}

const KEYS: Record<string, string> = { ec: "Elliptic curve", rsa: "RSA", ed25519: "Ed25519" };

function CertificateCard({ certificate }: { certificate: RestCertificate }) {
  const { role } = useSession();
  const pem = certificate.certificate;
  const fingerprint = useQuery({
    queryKey: ["fingerprint", pem],
    queryFn: async () => (await fingerprintOf(pem)) ?? null,
  });
  const [signing, setSigning] = useState("");
  const isStored = certificate.source === "pool";
  return (
    <Card
      title="Certificate"
      aside={
        mayAdminister(role) && (
          <Actions
            label="Certificate"
            actions={[
              {
                label: "Create certificate",
                task: (close) => <CreateCertificate certificate={certificate} close={close} />,
              },
              {
                label: "Create signing request",
                // The key of a certificate in files is not in the pool.
                on: isStored,
                task: (close) => (
                  <CreateSigningRequest
                    certificate={certificate}
                    made={setSigning}
                    close={close}
                  />
                ),
              },
              {
                label: "Import certificate",
                task: (close) => <ImportCertificate close={close} />,
              },
              {
                label: "Remove certificate",
                on: isStored,
                task: (close) => <RemoveCertificate close={close} />,
              },
            ]}
          />
        )
      }
    >
      <Facts
        facts={[
          ["Subject", certificate.issued_to || "–"],
          ["Issuer", certificate.issued_by || "–"],
          ["Status", certificate.status === "imported" ? "Imported" : "Self-signed"],
          ["Valid from", time(certificate.valid_from)],
          ["Valid until", time(certificate.valid_to)],
          ["Alternative names", certificate.subject_alternative_names.join(", ") || "None"],
          ["Key", `${KEYS[certificate.key_algorithm] ?? ""}, ${certificate.key_size} bits`],
          ["Stored in", isStored ? "The pool" : "Files of the array"],
          ["SHA-256 fingerprint", <code key="print">{fingerprint.data ?? "–"}</code>],
        ]}
      />
      {!isStored && (
        <p className="muted">
          A signing request needs a key in the pool: create a certificate first.
        </p>
      )}
      {signing !== "" && (
        <TextToTake
          label="Signing request"
          text={signing}
          file="holdfast.csr"
          hide={() => setSigning("")}
        />
      )}
    </Card>
  );
}
