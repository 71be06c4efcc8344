package store

import _ "muster.dev/muster/pkg/pgtest" // a test may
