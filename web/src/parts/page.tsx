/** The common parts of pages: a heading, which takes the focus when the page opens, and figures. */
import { type ReactNode, useEffect, useRef } from "react";

export function Page(props: { title: string; aside?: ReactNode; children: ReactNode }) {
  const { title, aside, children } = props;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} – Holdfast`;
    heading.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [title]);
  return (
    <>
      <header className="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {aside}
      </header>
      {children}
    </>
  );
}

/** Names and values. */
export function Facts({ facts }: { facts: (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A prominent figure. */
export function Figure(props: { label: string; value: ReactNode; more?: ReactNode }) {
  return (
    <div className="card figure">
      <div className="figure-label">{props.label}</div>
      <div className="figure-value">{props.value}</div>
      {props.more !== undefined && <div className="muted">{props.more}</div>}
    </div>
  );
}

export function Card(props: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="card">
      <header className="card-head">
        <h2>{props.title}</h2>
        {props.aside}
      </header>
      {props.children}
    </section>
  );
}
