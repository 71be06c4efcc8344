package e2e

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// stopRounds is how often each service is stopped: while a gang runs, and again as soon as the
// service is ready, when its requests to begin watches are on their way.
const stopRounds = 3

// A service that is asked to stop logs no error, nor do the others meanwhile.
func TestAStopLogsNoError(t *testing.T) {
	t.Parallel()
	errors, logs := observer.New(zap.ErrorLevel)
	logger := zap.New(zapcore.NewTee(zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel)).Core(), errors))
	w := startWorld(t, stack.Options{Logger: logger})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	runs := w.submit(stack.RayCluster("runs", 1, 1))
	w.reaches(runs, workload.Running)
	for range stopRounds {
		for _, service := range stack.Services() {
			if err := w.StopService(service); err != nil {
				t.Fatal(err)
			}
			if err := w.StartService(w.ctx, service); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, line := range logs.All() {
		t.Errorf("%s logged an error: %s %v", line.LoggerName, line.Message, line.ContextMap())
	}
}
