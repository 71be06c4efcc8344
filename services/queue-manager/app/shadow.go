package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/services/queue-manager/replay"
)

// ShadowConfig is the settings of a shadow.
type ShadowConfig struct {
	DatabaseURL, DatabaseURLFile string
	// Every is how often it looks for new decisions.
	Every time.Duration
}

// Register implements service.Config.
func (c *ShadowConfig) Register(flags *flag.FlagSet) {
	flags.StringVar(&c.DatabaseURL, "database-url", "", "`URL` of queue-manager's database; put a password into the environment or a file")
	flags.StringVar(&c.DatabaseURLFile, "database-url-file", "", "`file` that holds the database URL")
	flags.DurationVar(&c.Every, "every", 2*time.Second, "how often new decisions are looked for; at least 100ms")
}

// Validate implements service.Config.
func (c *ShadowConfig) Validate() error {
	if c.DatabaseURLFile != "" {
		url, err := readDatabaseURL(c.DatabaseURLFile)
		if err != nil {
			return err
		}
		c.DatabaseURL = url
	}
	if c.DatabaseURL == "" {
		return errors.New("database-url: is missing; set it, MUSTER_QUEUE_MANAGER_DATABASE_URL or database-url-file")
	}
	if c.Every < 100*time.Millisecond {
		return fmt.Errorf("every: %s: want at least 100ms", c.Every)
	}
	return nil
}

// Describe implements service.Describer.
func (c *ShadowConfig) Describe() string {
	return `queue-manager shadow repeats the decisions of the queue-manager that leads, with the code of this release, and counts
those that come out differently. It only reads Postgres.

Flags:`
}

// shadowMetrics count what a shadow found.
type shadowMetrics struct {
	decisions   prometheus.Counter
	skipped     prometheus.Counter
	differences *prometheus.CounterVec
	behind      prometheus.Gauge
}

func newShadowMetrics(registry prometheus.Registerer) *shadowMetrics {
	in := promauto.With(registry)
	m := &shadowMetrics{
		decisions:   in.NewCounter(prometheus.CounterOpts{Name: "muster_shadow_decisions_total", Help: "Decisions of the leader that came out the same."}),
		skipped:     in.NewCounter(prometheus.CounterOpts{Name: "muster_shadow_skipped_total", Help: "Decisions of the leader that were not repeated, after a difference."}),
		differences: in.NewCounterVec(prometheus.CounterOpts{Name: "muster_shadow_differences_total", Help: "Decisions of the leader that came out differently, by the first thing in which they differ."}, []string{"class"}),
		behind:      in.NewGauge(prometheus.GaugeOpts{Name: "muster_shadow_behind_seconds", Help: "Age of the last decision when it was repeated."}),
	}
	for _, class := range replay.Classes() {
		m.differences.WithLabelValues(class)
	}
	return m
}

// shadowAgain is how long a shadow waits before it begins again after a failure.
const shadowAgain = 10 * time.Second

// RunShadow repeats what is decided until ctx ends. While Postgres cannot be read it tries again.
func RunShadow(ctx context.Context, config *ShadowConfig, runtime *service.Runtime) error {
	metrics := newShadowMetrics(runtime.Metrics)
	watch := replay.Watch{
		Decided: func(at time.Time) {
			metrics.decisions.Inc()
			metrics.behind.Set(time.Since(at).Seconds())
		},
		Skipped: metrics.skipped.Inc,
		Differs: func(d replay.Difference, resumed bool) {
			metrics.differences.WithLabelValues(d.Class()).Inc()
			fields := []zap.Field{
				zap.String("class", d.Class()), zap.Int64("epoch", d.Epoch), zap.Int64("number", d.Number), zap.Int64("version", d.Version),
				zap.Time("at", d.At), zap.String("what", d.What), zap.Bool("resumed", resumed),
			}
			if d.Line != nil {
				fields = append(fields, zap.String("recorded", shortened(d.Line.Recorded)), zap.String("decided", shortened(d.Line.Replayed)))
			}
			runtime.Logger.Warn("a decision comes out differently", fields...)
		},
	}
	for ctx.Err() == nil {
		if err := replay.Shadow(ctx, config.DatabaseURL, config.Every, watch); err != nil && ctx.Err() == nil {
			runtime.Logger.Warn("cannot follow the decisions", zap.Error(err))
		}
		_ = pause.For(ctx, shadowAgain) // the loop looks at the context
	}
	return nil
}

// shortened bounds a line in the log.
func shortened(line string) string {
	const most = 2000
	if len(line) <= most {
		return line
	}
	return line[:most] + "..."
}
