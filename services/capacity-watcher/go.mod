module muster.dev/muster/services/capacity-watcher

go 1.26.0

require muster.dev/muster/pkg v0.0.0

replace muster.dev/muster/pkg => ../../pkg
