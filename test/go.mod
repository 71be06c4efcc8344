module muster.dev/muster/test

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	muster.dev/muster/deploy v0.0.0
	muster.dev/muster/migrations v0.0.0
	muster.dev/muster/pkg v0.0.0
	muster.dev/muster/services/capacity-watcher v0.0.0
	muster.dev/muster/services/dispatcher v0.0.0
	muster.dev/muster/services/intake v0.0.0
	muster.dev/muster/services/queue-manager v0.0.0
)

replace muster.dev/muster/pkg => ../pkg

replace muster.dev/muster/migrations => ../migrations

replace muster.dev/muster/deploy => ../deploy

replace muster.dev/muster/services/intake => ../services/intake

replace muster.dev/muster/services/capacity-watcher => ../services/capacity-watcher

replace muster.dev/muster/services/queue-manager => ../services/queue-manager

replace muster.dev/muster/services/dispatcher => ../services/dispatcher
