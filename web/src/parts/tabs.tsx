/** A choice between views: buttons, one of which is pressed. */

export function Tabs<V extends string>(props: {
  label: string;
  tabs: readonly (readonly [value: V, label: string])[];
  chosen: V;
  choose: (value: V) => void;
}) {
  const { label, tabs, chosen, choose } = props;
  return (
    <div className="tabs" role="group" aria-label={label}>
      {tabs.map(([value, text]) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === chosen}
          onClick={() => choose(value)}
        >
          {text}
        </button>
      ))}
    </div>
  );
}
