package workload

import (
	"encoding/json"
	"time"
)

// Seconds is a Duration in whole seconds, which takes half the memory.
type Seconds int32

// SecondsOf returns a duration in whole seconds, the next ones if it has a part of a second.
func SecondsOf(d Duration) Seconds {
	return Seconds((d + Duration(time.Second) - 1) / Duration(time.Second))
}

// Duration returns the seconds as a Duration.
func (s Seconds) Duration() Duration { return Duration(s) * Duration(time.Second) }

// MarshalJSON implements json.Marshaler.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(s.Duration()) }

// UnmarshalJSON implements json.Unmarshaler.
func (s *Seconds) UnmarshalJSON(data []byte) error {
	var d Duration
	if err := d.UnmarshalJSON(data); err != nil {
		return err
	}
	*s = SecondsOf(d)
	return nil
}
