package masked

import "regexp"

var (
	// names are the words of which one makes a name that of a secret.
	names = regexp.MustCompile(`(?i)(passw(or)?d|passwd|passphrase|pwd|secret|token|api[-_.]?key|access[-_.]?key|private[-_.]?key|signing[-_.]?key|encryption[-_.]?key|account[-_.]?key|credential|cookie|bearer|dsn|auth|pass([-_.]|$))`)
	// innocent are words that contain such a word and name no secret.
	innocent = regexp.MustCompile(`(?i)(^|[^a-z])authors?($|[^a-z])|authority|tokeniz(ers?|ation|ed?|ing)|bypass|compass|(^|[-_.])((max|min|num|number|n|of|total|new|special|prompt|batched|context|input|output|stop|train|eval)[-_.]?)+tokens$`)
	// references are names of what refers to a secret, or how it is used.
	references = regexp.MustCompile(`(?i)(name|ref|path|file|dir|mount|type|mode|url|uri|expirationseconds|key|keys|projection|enabled|method|scheme)$`)
	// keys are names of keys, which are secrets although a reference ends as they do. A key of
	// a map in Kubernetes, such as topologyKey, has no separator.
	keys = regexp.MustCompile(`(?i)[a-z0-9][-_.]keys?$|(api|access|private|signing|encryption|account|secret|auth|token|ssh|master|openai|wandb)keys?$`)
	// hints are in each text that has the name of a secret.
	hints = regexp.MustCompile(`(?i)pass|pwd|secret|token|key|credential|cookie|bearer|dsn|auth`)
)

// isSecret reports whether what has a name is a secret.
func isSecret(name string) bool {
	if keys.MatchString(name) {
		return true
	}
	return names.MatchString(innocent.ReplaceAllString(name, "-")) && !references.MatchString(name)
}
