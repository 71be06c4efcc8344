package service

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
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
