// Package service runs one Muster service as a process: settings from flags,
// environment and file, a structured logger, signals, the health and metrics
// endpoints, and an exit code.
//
// It is not the composition of a service; that is each service's own package
// app, whose Run gets a Runtime and can as well be started by another process.
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
	"go.uber.org/zap/zapcore"

	"muster.dev/muster/pkg/tracing"
	"muster.dev/muster/pkg/version"
)

// Exit codes of a service.
const (
	ExitOK      = 0
	ExitFailure = 1 // it ran and failed
	ExitUsage   = 2 // its settings are wrong
)

// Config is the settings of a service.
type Config interface {
	// Register declares a flag for each setting, its default in place.
	Register(*flag.FlagSet)
	// Validate reports all faults at once.
	Validate() error
}

// Describer is a Config that has something to say above its flags in --help,
// such as the commands that the program knows.
type Describer interface {
	Describe() string
}

// Runtime is what a running service is given.
type Runtime struct {
	Logger  *zap.Logger
	Metrics *prometheus.Registry
	Health  *Health
	// Tracer makes the spans of workloads; its zero value none.
	Tracer tracing.Tracer
}

// NewRuntime returns a runtime of its own for the named service. Several may
// live in one process.
func NewRuntime(logger *zap.Logger, name string) *Runtime {
	return &Runtime{Logger: logger.Named(name), Metrics: NewMetrics(), Health: NewHealth()}
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
	logger, err := NewLogger(process.logLevel, process.logFormat)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return ExitUsage
	}
	defer func() { _ = logger.Sync() }()
	if err := serve(ctx, name, process, config, run, logger); err != nil {
		logger.Error("stopped by an error", zap.String("service", name), zap.Error(err))
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
	flags.StringVar(&process.healthAddress, "health-address", "127.0.0.1:0", "`host:port` of /healthz, /readyz and /metrics; port 0 takes a free one")
	flags.StringVar(&process.pprofAddress, "pprof-address", "", "`host:port`, on the loopback interface only, of Go's profiles; without it there are none")
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
		runtime.Logger.Info("profiles", zap.String("at", profiles.URL()+"/debug/pprof/"))
	}
	tracer, flush, err := process.tracing.start(ctx, name)
	if err != nil {
		return err
	}
	defer flush()
	runtime.Tracer = tracer
	runtime.Logger.Info("starting", zap.String("version", version.String()), zap.String("health", endpoint.URL()))
	if err := run(ctx, config, runtime); err != nil && ctx.Err() == nil {
		return err // after a signal, what could not be finished is no failure
	}
	runtime.Logger.Info("stopped")
	return nil
}

// NewLogger returns a zap logger to standard error.
func NewLogger(level, format string) (*zap.Logger, error) {
	at, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error", level)
	}
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(at)
	config.Sampling = nil
	config.DisableStacktrace = true
	config.EncoderConfig.TimeKey = "time"
	config.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	config.EncoderConfig.EncodeDuration = zapcore.StringDurationEncoder
	switch format {
	case "json":
	case "console":
		config.Encoding = "console"
		config.EncoderConfig.EncodeLevel = zapcore.CapitalLevelEncoder
	default:
		return nil, fmt.Errorf("log format %q: want json or console", format)
	}
	return config.Build()
}

// Holder names this process to people, where one of several holds something.
func Holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}
