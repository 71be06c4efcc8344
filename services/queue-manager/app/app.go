package app

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/engine"
	"muster.dev/muster/services/queue-manager/internal/forecast"
	"muster.dev/muster/services/queue-manager/internal/load"
	"muster.dev/muster/services/queue-manager/internal/settings"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// pingTimeout bounds the readiness check of the database.
const pingTimeout = 2 * time.Second

// Run runs queue-manager until ctx ends. The database must have been migrated.
func Run(ctx context.Context, config *Config, runtime *service.Runtime) error {
	ready := runtime.Health.Await("leader or standby")
	for _, note := range config.notes {
		runtime.Logger.Warn("queues file has a setting without effect", zap.String("note", note))
	}
	var ledger *store.Store
	err := service.Patiently(ctx, runtime.Logger, "connect to the database", opensLater, func() (err error) {
		ledger, err = store.Open(ctx, config.DatabaseURL, config.Timeouts)
		return err
	})
	if err != nil {
		return err
	}
	defer ledger.Close()
	for _, note := range ledger.Unsafe(ctx) {
		runtime.Logger.Warn("Postgres is not set up safely", zap.String("problem", note))
	}
	b, err := config.NATS.Connect(ctx, "queue-manager", runtime.Logger)
	if err != nil {
		return err
	}
	defer b.Close()
	runtime.AwaitNATS(b)
	runtime.Health.Check("database", func() error {
		ctx, cancel := context.WithTimeout(ctx, pingTimeout)
		defer cancel()
		return ledger.Ping(ctx)
	})
	estimates := &forecast.Forecaster{
		Store: ledger, Logger: runtime.Logger, Metrics: forecast.NewMetrics(runtime.Metrics), Interval: config.EstimateInterval, Now: time.Now, Holder: service.Holder(),
		Configure: func(ctx context.Context, file []byte) (state.Settings, error) {
			return configured(ctx, ledger, fileOf(config), file)
		},
	}
	if err := answer(ctx, b, ledger, estimates, config.ClusterSilence); err != nil {
		return err
	}
	if config.EstimateInterval > 0 {
		go estimates.Run(ctx)
	}
	queues := &load.Collector{Store: ledger, Logger: runtime.Logger, Every: loadEvery}
	runtime.Metrics.MustRegister(queues)
	go queues.Run(ctx)
	if err := b.GuardJetStream(ctx); err != nil {
		return err
	}
	terms := engine.NewTerms()
	runtime.Health.Check("terms", terms.Failing)
	return engine.Run(ctx, engine.Options{
		Store: ledger, Bus: b, Logger: runtime.Logger, Holder: service.Holder(), File: fileOf(config),
		NodeGrace: config.NodeGrace, ClusterSilence: config.ClusterSilence, CheckStreams: config.CheckStreams, BudgetInterval: config.BudgetInterval, LeaderTimeout: config.LeaderTimeout,
		Limits: state.Limits{Live: config.MaxLive, InQueue: config.MaxLivePerQueue},
		Retention: store.Retention{
			History: config.KeepHistory, Archive: config.KeepArchive, Decisions: config.KeepDecisions + checkpointsApart*config.LongestTerm,
		},
		LongestTerm: config.LongestTerm, AcceptNewDatabase: config.AcceptNewDatabase, AcceptOldPrimary: config.AcceptOldPrimary,
		Metrics: engine.NewMetrics(runtime.Metrics), Tracer: runtime.Tracer, Ready: ready, Terms: terms,
	})
}

// loadEvery is how often the metrics of queues are read.
const loadEvery = 15 * time.Second

// opensLater reports whether a database that does not open may do so later: it is away,
// starts, does not know the password yet, or breaks the connection. It does not when it
// refuses the question for the schema for good, or has none.
func opensLater(err error) bool {
	var unread *pgconn.ParseConfigError
	return !errors.As(err, &unread) && !errors.Is(err, store.ErrNoSchema) && !store.Suspect(err)
}

// checkpointsApart is the most terms from a decision back to the checkpoint that its replay
// begins with.
const checkpointsApart = 2

// configured is what queue-manager would do with other queues. A queues file takes the place
// of the present one, with what was applied beside it. Kueue's manifests are as if they were
// applied, unless the present file is such manifests.
func configured(ctx context.Context, ledger *store.Store, present settings.File, content []byte) (state.Settings, error) {
	stored, err := ledger.Applied(ctx)
	if err != nil {
		return state.Settings{}, err
	}
	applied := engine.ParseApplied(stored.Objects)
	if err := applied.Unread(); err != nil {
		return state.Settings{}, err
	}
	if kueue.Is(content) {
		objects, err := kueue.Parse(content)
		if err != nil {
			return state.Settings{}, err
		}
		if !present.Has(kueue.Keys(kueue.Merge(objects))) {
			for _, o := range objects {
				applied[o.Key] = settings.Applied{Object: o}
			}
			all, _, err := present.Combine(applied)
			return all, err
		}
	}
	read, _, err := queuesfile.Read(content)
	if err != nil {
		return state.Settings{}, err
	}
	all, _, err := fileOf(&Config{Queues: read.Queues, Policy: read.Config}).Combine(applied)
	return all, err
}

// DatabaseRole is what the service's login in Postgres is a member of; Migrate
// makes it.
const DatabaseRole = "muster_queue_manager"

// Migrate applies the migrations that are missing.
func Migrate(ctx context.Context, databaseURL string, logger *zap.Logger) error {
	applied, err := store.Migrate(ctx, databaseURL)
	if err != nil {
		return err
	}
	logger.Info("schema is up to date", zap.Strings("applied", applied))
	return nil
}

func fileOf(config *Config) settings.File {
	file := settings.File{BuiltIn: config.builtIn, Settings: settings.Settings{Policy: config.Policy}}
	for _, q := range config.Queues {
		file.Queues = append(file.Queues, state.Queue{Name: q.Name, Namespaces: q.Namespaces, Strategy: q.Strategy, Rules: q.Rules})
	}
	return file
}

// Unquarantine takes workloads, or nodes named CLUSTER/NODE, out of quarantine and
// returns those that were there. The leader notices within seconds.
func Unquarantine(ctx context.Context, databaseURL string, names []string) (released []string, err error) {
	ledger, err := store.Open(ctx, databaseURL, store.DefaultTimeouts())
	if err != nil {
		return nil, err
	}
	defer ledger.Close()
	for _, name := range names {
		was, err := ledger.Unquarantine(ctx, name)
		if err != nil {
			return released, err
		}
		if was {
			released = append(released, name)
		}
	}
	return released, nil
}
