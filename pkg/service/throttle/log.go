package throttle

import (
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Allowances of warnings and errors with the same message: for each tenant, and for all
// lines without one.
const (
	tenantEvery, tenantBurst = 10 * time.Second, 20
	otherEvery, otherBurst   = time.Second, 100
)

// Log throttles warnings and errors with the same message, for each tenant: ten thousand
// refused messages of one tenant make a few lines, and hide no line of another. The next
// line has the number of omitted ones. Other levels are not throttled, because refusals
// do not use them.
func Log() zap.Option {
	tenants, others := New(tenantEvery, tenantBurst), New(otherEvery, otherBurst)
	return zap.WrapCore(func(core zapcore.Core) zapcore.Core { return &log{Core: core, tenants: tenants, others: others} })
}

type log struct {
	zapcore.Core
	tenants, others *Throttle
	with            []zapcore.Field
}

// With implements zapcore.Core.
func (l *log) With(fields []zapcore.Field) zapcore.Core {
	return &log{Core: l.Core.With(fields), tenants: l.tenants, others: l.others, with: append(l.with[:len(l.with):len(l.with)], fields...)}
}

// Check implements zapcore.Core.
func (l *log) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.Enabled(entry.Level) {
		return checked.AddCore(entry, l)
	}
	return checked
}

// Write implements zapcore.Core.
func (l *log) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if entry.Level != zapcore.WarnLevel && entry.Level != zapcore.ErrorLevel {
		return l.Core.Write(entry, fields)
	}
	throttle, key := l.others, entry.Message
	if tenant := tenantOf(append(l.with[:len(l.with):len(l.with)], fields...)); tenant != "" {
		throttle, key = l.tenants, entry.Message+"\x00"+tenant
	}
	allowed, refused := throttle.allows(key, entry.Time)
	if !allowed {
		return nil
	}
	if refused > 0 {
		fields = append(fields[:len(fields):len(fields)], zap.Int("lines left out", refused))
	}
	return l.Core.Write(entry, fields)
}

// subjectTokens is the number of leading tokens of a subject up to the queue or cluster;
// a sender can invent the rest.
const subjectTokens = 3

// tenantOf returns the caller, namespace, queue or subject in a line's fields.
func tenantOf(fields []zapcore.Field) string {
	for _, field := range fields {
		switch field.Key {
		case "caller", "namespace", "queue":
			return field.String
		case "subject":
			parts := strings.SplitN(field.String, ".", subjectTokens+1)
			return strings.Join(parts[:min(len(parts), subjectTokens)], ".")
		}
	}
	return ""
}
