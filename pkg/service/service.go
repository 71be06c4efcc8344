// Package service runs one Muster service as a process: settings from flags, environment
// and file, a structured logger, signals, the health and metrics endpoints, and an exit
// code.
//
// It is not for composing a service: each service's package app does that. Its Run gets a
// Runtime, so that another process can run it, too.
package service

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/peterbourgon/ff/v3"
	"github.com/peterbourgon/ff/v3/ffyaml"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/service/logging"
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/service/version"
)

// Exit codes of a service.
const (
	ExitOK      = 0
	ExitFailure = 1 // the service failed
	ExitUsage   = 2 // the settings are wrong
)

// Config is the settings of a service.
type Config interface {
	// Register declares a flag with its default for each setting.
	Register(*flag.FlagSet)
	// Validate reports all faults at once.
	Validate() error
}

// Describer is a Config with a text above its flags in --help, such as the program's
// commands.
type Describer interface {
	Describe() string
}

// Runtime has the dependencies of a running service.
type Runtime struct {
	Logger  *zap.Logger
	Metrics *prometheus.Registry
	Health  *Health
	// Tracer makes the spans of workloads; its zero value makes none.
	Tracer tracing.Tracer
}

// NewRuntime returns a separate runtime for the named service. A process may have
// several.
func NewRuntime(logger *zap.Logger, name string) *Runtime {
	return &Runtime{Logger: logger.Named(name), Metrics: NewMetrics(), Health: newHealth()}
}

// NewMetrics returns a registry with the process's own metrics.
func NewMetrics() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// Main runs the service until SIGINT, SIGTERM or its end, and returns the exit
// code. Settings come from flags, from the environment (MUSTER_<NAME>_<FLAG>)
// and from the YAML file named by --config, in this order of precedence.
func Main[C Config](name string, config C, run func(context.Context, C, *Runtime) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	process, err := parse(name, os.Args[1:], config)
	if errors.Is(err, flag.ErrHelp) {
		return ExitOK
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return ExitUsage
	}
	logger, err := logging.New(process.logLevel, process.logFormat)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return ExitUsage
	}
	defer func() { _ = logger.Sync() }()
	if err := serve(ctx, name, process, config, run, logger); err != nil {
		logger.Error("service failed", zap.String("service", name), zap.Error(err))
		return ExitFailure
	}
	return ExitOK
}

// processSettings are the settings that every service process has.
type processSettings struct {
	logLevel, logFormat, healthAddress, pprofAddress string
	tracing                                          tracingSettings
}

func parse(name string, args []string, config Config) (processSettings, error) {
	var process processSettings
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&process.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&process.logFormat, "log-format", "json", "json or console")
	flags.StringVar(&process.healthAddress, "health-address", "127.0.0.1:0", "`host:port` of /healthz, /readyz and /metrics; port 0 chooses a free one")
	flags.StringVar(&process.pprofAddress, "pprof-address", "", "`host:port`, on the loopback interface only, of Go's profiles; empty turns them off")
	process.tracing.register(flags)
	flags.String("config", "", "YAML `file` with settings named like the flags")
	showVersion := flags.Bool("version", false, "print the version and exit")
	config.Register(flags)
	if d, ok := any(config).(Describer); ok {
		flags.Usage = func() {
			fmt.Fprintf(flags.Output(), "%s\n\n", d.Describe())
			flags.PrintDefaults()
		}
	}
	prefix := "MUSTER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	err := ff.Parse(flags, args, ff.WithEnvVarPrefix(prefix), ff.WithConfigFileFlag("config"), ff.WithConfigFileParser(ffyaml.Parser))
	if err != nil {
		return process, err
	}
	if *showVersion {
		fmt.Println(name, version.String())
		return process, flag.ErrHelp
	}
	if rest := flags.Args(); len(rest) > 0 {
		return process, fmt.Errorf("unexpected argument %q: settings are flags", rest[0])
	}
	return process, errors.Join(process.validate(), config.Validate())
}

func (p processSettings) validate() error {
	return errors.Join(p.tracing.validate(), validateProfiles(p.pprofAddress))
}

func serve[C Config](ctx context.Context, name string, process processSettings, config C,
	run func(context.Context, C, *Runtime) error, logger *zap.Logger,
) error {
	runtime := NewRuntime(logger, name)
	endpoint, err := ListenHealth(process.healthAddress, runtime.Health, runtime.Metrics)
	if err != nil {
		return err
	}
	defer endpoint.Close()
	if process.pprofAddress != "" {
		profiles, err := listenProfiles(process.pprofAddress)
		if err != nil {
			return err
		}
		defer profiles.Close()
		runtime.Logger.Info("serving profiles", zap.String("url", profiles.URL()+"/debug/pprof/"))
	}
	tracer, flush, err := process.tracing.start(ctx, name)
	if err != nil {
		return err
	}
	defer flush()
	runtime.Tracer = tracer
	runtime.Logger.Info("starting", zap.String("version", version.String()), zap.String("health", endpoint.URL()))
	if err := run(ctx, config, runtime); err != nil && ctx.Err() == nil {
		return err // after a signal, unfinished work is no failure
	}
	runtime.Logger.Info("stopped")
	return nil
}

// Holder returns a readable name of this process, for leases.
func Holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}
