package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
)

// TestPatiently: temporary errors are retried until success, permanent ones are not.
func TestPatiently(t *testing.T) {
	t.Parallel()
	errAway, errWrong := errors.New("away"), errors.New("wrong")
	passes := func(err error) bool { return errors.Is(err, errAway) }
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := Patiently(t.Context(), zap.NewNop(), "x", passes, func() error {
			if tries++; tries < 20 {
				return errAway
			}
			return nil
		})
		if err != nil || tries != 20 {
			t.Errorf("%v after %d tries, want success after 20", err, tries)
		}
	})
	tries := 0
	if err := Patiently(t.Context(), zap.NewNop(), "x", passes, func() error { tries++; return errWrong }); !errors.Is(err, errWrong) || tries != 1 {
		t.Errorf("%v after %d tries, want the error after one", err, tries)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := Patiently(ctx, zap.NewNop(), "x", passes, func() error { cancel(); return errAway }); !errors.Is(err, errAway) {
		t.Errorf("%v when the service stops, want the last error", err)
	}
}
