package service

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

func TestLibrariesOfKubernetesLogAsTheServiceDoes(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.InfoLevel)
	ctx := NewRuntime(zap.New(core), "dispatcher").ForKubernetes(t.Context())
	klog.FromContext(ctx).Info("acquired lease", "lock", "a/b")
	klog.FromContext(ctx).V(2).Info("a detail")
	all := logs.All()
	if len(all) != 1 || all[0].LoggerName != "dispatcher" || all[0].Message != "acquired lease" || all[0].ContextMap()["lock"] != "a/b" {
		t.Errorf("logged is %+v", all)
	}
}

// What client-go reports of a watch that a stop has cancelled is no error of the service; of any
// other it is, until the service stops.
func TestARequestThatAStopCancelsIsNoError(t *testing.T) {
	t.Parallel()
	cancelled := fmt.Errorf("watch nodes: %w", context.Canceled)
	for _, test := range []struct {
		name    string
		err     error
		stopped bool
		errors  int
	}{
		{"it fails", errors.New("connection refused"), false, 1},
		{"the end of a term cancels it", cancelled, false, 0},
		{"a stop cancels it", cancelled, true, 0},
		{"it fails while the service stops", errors.New("connection refused"), true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			core, logs := observer.New(zapcore.DebugLevel)
			root, stop := context.WithCancel(t.Context())
			defer stop()
			ctx := NewRuntime(zap.New(core), "capacity-watcher").ForKubernetes(root)
			if test.stopped {
				stop()
			}
			utilruntime.HandleErrorWithContext(ctx, test.err, "Failed to watch", "reflector", "nodes")
			if got := logs.FilterLevelExact(zapcore.ErrorLevel).Len(); got != test.errors {
				t.Errorf("%d errors are logged, want %d: %+v", got, test.errors, logs.All())
			}
			if all := logs.All(); len(all) != 1 || all[0].ContextMap()["reflector"] != "nodes" {
				t.Errorf("logged is %+v, want one line about the reflector", all)
			}
		})
	}
}
