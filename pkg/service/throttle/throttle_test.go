package throttle

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// TestOneKeyDoesNotUseUpAnothers: each key has its burst, then one in each interval.
func TestOneKeyDoesNotUseUpAnothers(t *testing.T) {
	t.Parallel()
	throttle, now := New(time.Second, 3), time.Unix(1, 0)
	allowed := func(key string, times int) (n, refused int) {
		for range times {
			is, before := throttle.allows(key, now)
			if is {
				n++
			}
			refused += before
		}
		return n, refused
	}
	if n, _ := allowed("hostile", 10_000); n != 3 {
		t.Errorf("%d of 10,000 at once were allowed, want 3", n)
	}
	if n, _ := allowed("honest", 3); n != 3 {
		t.Errorf("%d of another key's 3 were allowed", n)
	}
	now = now.Add(2 * time.Second)
	if n, refused := allowed("hostile", 10_000); n != 2 || refused != 9_997 {
		t.Errorf("two seconds later %d were allowed, after %d that were not; want 2 and 9,997", n, refused)
	}
}

// TestLinesAreWrittenSparingly: ten thousand refusals of one tenant make a few lines, and
// other tenants have their own allowance.
func TestLinesAreWrittenSparingly(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zapcore.InfoLevel)
	logger := zap.New(core, Log())
	for i := range 10_000 {
		logger.Warn("message refused", zap.String("subject", fmt.Sprintf("muster.status.hostile.%d", i)))
		logger.With(zap.String("namespace", "hostile")).Error("pod refused", zap.Int("number", i))
		logger.Warn("of no tenant", zap.Int("number", i))
	}
	if n := lines.Len(); n < 3 || n > 2*2*tenantBurst+2*otherBurst {
		t.Errorf("30,000 refusals are %d lines, want a few", n)
	}
	before := lines.Len()
	logger.Warn("message refused", zap.String("subject", "muster.status.honest.1"))
	logger.Info("message refused", zap.String("subject", "muster.status.hostile.1"))
	if n := lines.Len() - before; n != 2 {
		t.Errorf("%d lines of an honest tenant and of information, want 2", n)
	}
}

// TestWhatIsLeftOutIsCounted: the next line has the number of omitted ones.
func TestWhatIsLeftOutIsCounted(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zapcore.InfoLevel)
	bounded := zap.New(core, Log()).Core()
	entry := zapcore.Entry{Level: zapcore.WarnLevel, Message: "refused", Time: time.Unix(1, 0)}
	tenant := []zapcore.Field{zap.String("queue", "q")}
	for range tenantBurst + 7 {
		if err := bounded.Write(entry, tenant); err != nil {
			t.Fatal(err)
		}
	}
	entry.Time = entry.Time.Add(tenantEvery)
	if err := bounded.Write(entry, tenant); err != nil {
		t.Fatal(err)
	}
	if last := lines.All()[lines.Len()-1].ContextMap()["lines left out"]; last != int64(7) {
		t.Errorf("the last line stands for %v more, want 7", last)
	}
}

// TestKeysAreForgotten: invented keys do not fill the memory.
func TestKeysAreForgotten(t *testing.T) {
	t.Parallel()
	throttle := New(time.Hour, 1)
	for i := range 3 * keysMost {
		throttle.Allows(fmt.Sprint(i))
	}
	if len(throttle.keys) > keysMost {
		t.Errorf("%d keys are remembered, want %d at most", len(throttle.keys), keysMost)
	}
}
