package bus_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
)

func TestCredentialsThatAreNone(t *testing.T) {
	t.Parallel()
	const secret = "SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBZ"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{file, filepath.Join(t.TempDir(), "missing")} {
		_, err := bus.Connect(t.Context(), bus.Options{URL: "nats://127.0.0.1:1", CredentialsFile: file, Logger: zap.NewNop()})
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%v: want an error that names the file", err)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%v tells the secret", err)
		}
	}
}

func TestTLSFilesThatAreNone(t *testing.T) {
	t.Parallel()
	missing, text := filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, files := range map[string]bus.TLS{
		"nats-ca: open " + missing:      {CA: missing},
		"holds no certificate":          {CA: text},
		"nats-key: is missing":          {Certificate: text},
		"nats-certificate: is":          {Key: text},
		text + `" with key "` + missing: {Certificate: text, Key: missing},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := bus.Connect(t.Context(), bus.Options{URL: "nats://127.0.0.1:1", TLS: files, Logger: zap.NewNop()})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want an error that says %q", files, err, want)
			}
		})
	}
}
