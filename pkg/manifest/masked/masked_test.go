package masked_test

import (
	"encoding/json"
	"strings"
	"testing"

	"muster.dev/muster/pkg/manifest/masked"
)

// TestSecretsAreMasked: what is a secret is not in the text that people see, and the rest is.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manifest string
		hidden   int
		shows    string
	}{
		"a variable":            {`{"env": [{"name": "HF_TOKEN", "value": "s3cr3t"}, {"name": "EPOCHS", "value": "12"}]}`, 1, "12"},
		"a key of a cloud":      {`{"env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "s3cr3t"}, {"name": "AZURE_STORAGE_ACCOUNT_KEY", "value": "s3cr3t"}]}`, 2, "AWS_SECRET_ACCESS_KEY"},
		"a reference":           {`{"env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}]}`, 0, `"name":"hub"`},
		"a Secret in a wrapper": {`{"components": [{"template": {"kind": "Secret", "data": {"a": "s3cr3t"}, "stringData": {"b": "s3cr3t"}, "metadata": {"name": "hub"}}}]}`, 2, `"name":"hub"`},
		"an annotation":         {`{"metadata": {"annotations": {"example.org/api-token": "s3cr3t", "team": "vision"}}}`, 1, "vision"},
		"the applied object":    {`{"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"password\":\"s3cr3t\"}"}}}`, 1, "last-applied"},
		"an argument":           {`{"args": ["--password=s3cr3t", "--lr=0.1"]}`, 1, "--lr=0.1"},
		"the next argument":     {`{"args": ["--token", "s3cr3t", "--lr", "0.1"]}`, 1, "0.1"},
		"a script":              {`{"command": ["sh", "-c", "export WANDB_API_KEY=s3cr3t; python train.py --auth-token s3cr3t --epochs 3"]}`, 2, "--epochs 3"},
		"a runtime environment": {`{"runtimeEnvYAML": "env_vars:\n  DB_PASSWORD: \"s3cr3t two\"\n  MODE: fast\n"}`, 1, "MODE: fast"},
		"JSON in a text":        {`{"text": "{\"password\": \"s3cr3t\", \"mode\": \"fast\"}"}`, 1, "fast"},
		"a URL":                 {`{"env": [{"name": "DATABASE", "value": "postgres://ann:s3cr3t@db:5432/x"}]}`, 1, "postgres://ann:"},
		"a private key":         {`{"file": "-----BEGIN RSA PRIVATE KEY-----\ns3cr3t\n-----END RSA PRIVATE KEY-----\nrest"}`, 1, "rest"},
		"a bearer":              {`{"header": "Authorization: Bearer s3cr3ts3cr3t"}`, 1, "Authorization"},
		"names of other things": {`{"secretName": "hub", "tokenizer": "bpe", "automountServiceAccountToken": false, "maxTokens": "4096", "author": "ann", "imagePullSecrets": [{"name": "regcred"}]}`, 0, "regcred"},
		"a variable in a text":  {`{"command": ["train --token $HF_TOKEN"]}`, 0, "$HF_TOKEN"},
		"a large number":        {`{"seed": 12345678901234567890}`, 0, "12345678901234567890"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown, hidden, err := masked.JSON([]byte(c.manifest))
			if err != nil {
				t.Fatal(err)
			}
			if text := string(shown); strings.Contains(text, "s3cr3t") || !strings.Contains(text, c.shows) || hidden != c.hidden {
				t.Errorf("%d masked, want %d, with %q in\n%s", hidden, c.hidden, c.shows, text)
			}
		})
	}
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"env": [{"name": "HF_TOKEN", "value": "s3cr3t"}], "args": ["--token", "x", "a=b: c"]}`))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		shown, _, err := masked.JSON(manifest)
		if err != nil {
			return
		}
		if !json.Valid(shown) {
			t.Errorf("%q became %q", manifest, shown)
		}
	})
}
