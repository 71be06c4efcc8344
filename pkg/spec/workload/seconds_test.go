package workload

import (
	"encoding/json"
	"testing"
	"time"
)

func TestSecondsAreWrittenAsADuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		seconds Seconds
		written string
	}{
		`"0s"`: {0, `"0s"`}, `"1ms"`: {1, `"1s"`}, `"1s"`: {1, `"1s"`}, `"90s"`: {90, `"1m30s"`}, `"87600h"`: {315_360_000, `"87600h0m0s"`},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			var s Seconds
			if err := json.Unmarshal([]byte(text), &s); err != nil || s != want.seconds || s.Duration() != Duration(time.Duration(s)*time.Second) {
				t.Errorf("%s is read as %d, %v; want %d", text, s, err, want.seconds)
			}
			if written, err := json.Marshal(s); err != nil || string(written) != want.written {
				t.Errorf("%d is written as %s, %v; want %s", s, written, err, want.written)
			}
		})
	}
	for _, bad := range []string{`5`, `"soon"`, `"-1s"`, `"87601h"`} {
		t.Run(bad, func(t *testing.T) {
			t.Parallel()
			var s Seconds
			if err := json.Unmarshal([]byte(bad), &s); err == nil {
				t.Errorf("%s is read as %d", bad, s)
			}
		})
	}
}
