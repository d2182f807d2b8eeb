/** A warning on every page while the array can't be reached. */
import { time } from "../lib/format";
import { useAway } from "../lib/reach";

export function Reach() {
  const away = useAway();
  return (
    <div className="reach" role="alert">
      {away !== null && (
        <p className="notice error">
          The array can’t be reached.{" "}
          {away.heardMs !== null &&
            `It last answered at ${time(away.heardMs)}; the data shown may be out of date.`}
        </p>
      )}
    </div>
  );
}
