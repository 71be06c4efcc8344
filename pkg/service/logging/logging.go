// Package logging makes the loggers of Muster's programs. It is not for choosing what
// they log.
package logging

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"muster.dev/muster/pkg/service/throttle"
)

// New returns a zap logger to standard error, which throttles lines that tenants can
// cause.
func New(level, format string) (*zap.Logger, error) {
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
	return config.Build(throttle.Log())
}
