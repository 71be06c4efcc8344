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
		"a header":              {`{"Authorization": "s3cr3t", "command": ["curl -H 'Authorization: Token s3cr3t s3cr3t' https://host"]}`, 2, "https://host"},
		"many tokens":           {`{"env": [{"name": "API_TOKENS", "value": "s3cr3t"}], "args": ["--max-new-tokens=4096"], "tokens": ["s3cr3t"]}`, 2, "--max-new-tokens=4096"},
		"short passwords":       {`{"env": [{"name": "DB_PASS", "value": "s3cr3t"}, {"name": "PASSPHRASE", "value": "s3cr3t"}, {"name": "BYPASS", "value": "1"}], "dbPass": "s3cr3t", "PGPASS": "s3cr3t", "password": 12345}`, 5, "BYPASS"},
		"keys":                  {`{"env": [{"name": "SSH_KEY", "value": "s3cr3t"}, {"name": "WANDB_KEY", "value": "s3cr3t"}, {"name": "OPENAI_KEY", "value": "s3cr3t"}, {"name": "TOKEN_KEY", "value": "s3cr3t"}], "topologyKey": "rack"}`, 4, "rack"},
		"a sentence in YAML":    {`{"yaml": "env:\n  DB_PASSWORD: correct s3cr3t battery # s3cr3t\n  MODE: fast\n"}`, 1, "\\n  MODE: fast"},
		"lines of YAML":         {`{"yaml": "a:\n  - password: |\n      s3cr3t\n\n      s3cr3t\n    mode: fast\n"}`, 1, "mode: fast"},
		"folded lines":          {`{"yaml": "password: >-\n  s3cr3t\nmode: fast\n"}`, 1, "mode: fast"},
		"the next line of YAML": {`{"yaml": "password:\n  s3cr3t\nmode: fast\n"}`, 1, "mode: fast"},
		"a longer plain value":  {`{"yaml": "password: one\n  s3cr3t\nmode: fast\n"}`, 1, "mode: fast"},
		"a quote in YAML":       {`{"yaml": "password: 'it''s s3cr3t'\nmode: fast\n"}`, 1, "mode: fast"},
		"marks in a word":       {`{"command": ["PASSWORD=ab,s3cr3t;s3cr3t&s3cr3t|s3cr3t)s3cr3t MODE=fast run"]}`, 1, "MODE=fast run"},
		"quoted parts":          {`{"command": ["PASSWORD=ab\"c s3cr3t\"'d s3cr3t' run"]}`, 1, " run"},
		"quotes in JSON":        {`{"text": "{\"password\": \"a\\\"s3cr3t\", \"mode\": \"fast\"}"}`, 1, "fast"},
		"JSON in JSON":          {`{"text": "{\"a\": \"{\\\"password\\\": \\\"x s3cr3t\\\", \\\"mode\\\": 1}\"}"}`, 1, "mode"},
		"an open quote":         {`{"text": "password=\"x s3cr3t"}`, 1, "password="},
		"a list in a text":      {`{"text": "{\"tokens\": [\"a\", \"s3cr3t\"], \"mode\": \"fast\"}"}`, 1, "fast"},
		"an INI file":           {`{"text": "password = one s3cr3t\nmode = fast"}`, 1, "mode = fast"},
		"a hash":                {`{"command": ["PASSWORD=$2y$10$s3cr3t run", "--token $s3cr3t$s3cr3t"]}`, 2, " run"},
		"a default":             {`{"command": ["TOKEN=${TOKEN:-s3cr3t} run"]}`, 1, " run"},
		"variables in a text":   {`{"command": ["A_TOKEN=$A; B_TOKEN=${B} C_TOKEN=\"$(cat /c)\" run --token $(D)"]}`, 0, "$(cat /c)"},
		"an author":             {`{"GIT_AUTHOR_EMAIL": "ann@example.org", "author": "ann", "certificate-authority": "x", "tokenizer": "y"}`, 0, "ann@example.org"},
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
	f.Add([]byte(`["password: |\n  a\n", "{\"token\": [\"a\\\"\"]}", "PASSWORD=a\\\"b'c $(d"]`))
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
