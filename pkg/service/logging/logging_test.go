package logging

import (
	"reflect"
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/service/throttle"
)

// TestLogsAreBounded: the loggers of all formats are throttled.
func TestLogsAreBounded(t *testing.T) {
	t.Parallel()
	bounded := reflect.TypeOf(zap.NewNop().WithOptions(throttle.Log()).Core())
	for _, format := range []string{"json", "console"} {
		logger, err := New("info", format)
		if err != nil {
			t.Fatal(err)
		}
		if is := reflect.TypeOf(logger.Core()); is != bounded {
			t.Errorf("the log in %s writes by %v, want %v", format, is, bounded)
		}
	}
}
