package app

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/services/dispatcher/internal/permission"
)

// storedText is an API server that has a permission, or none.
type storedText struct {
	permission.Cluster
	text string
}

func (s storedText) Permission(context.Context) (permission.Record, error) {
	return permission.Record{Text: s.text}, nil
}

func (s storedText) Permitted(context.Context) ([]permission.Held, error) { return nil, nil }

// How long the permission lasts has a sample only where one was ever given: 0 would look like a
// cluster whose gangs are stopped.
func TestWithoutAPermissionNoneIsShown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, `{"until":"2026-01-02T03:04:05Z"}`: 1} {
		t.Run(text, func(t *testing.T) {
			keeper := permission.New(storedText{text: text}, permission.MachineClock(), time.Minute)
			if err := keeper.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			registry := prometheus.NewRegistry()
			permissionMetrics(registry, keeper)
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			samples := 0
			for _, f := range families {
				if f.GetName() == "muster_dispatcher_permission_seconds" {
					samples += len(f.GetMetric())
				}
			}
			if samples != want {
				t.Errorf("with %q stored there are %d samples, want %d", text, samples, want)
			}
		})
	}
}
