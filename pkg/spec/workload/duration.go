package workload

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a span of time that is written as Go writes it: "1m30s".
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("%s is no duration; want a text such as \"10m\"", data)
	}
	parsed, err := ParseDuration(text)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// longestDuration bounds what can be asked for, so that sums with it stay
// meaningful moments.
const longestDuration = 10 * 365 * 24 * time.Hour

// ParseDuration reads a duration that is not negative and at most ten years.
func ParseDuration(text string) (Duration, error) {
	parsed, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no duration; want a number and a unit, such as 90s, 10m or 2h", text)
	case parsed < 0 || parsed > longestDuration:
		return 0, fmt.Errorf("%q is not between 0s and %s", text, longestDuration)
	}
	return Duration(parsed), nil
}
