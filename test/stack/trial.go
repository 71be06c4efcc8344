package stack

import intake "muster.dev/muster/services/intake/app"

// Trial belongs at the start of TestMain of tests with a stack: intake reads a message that
// has come before in another process of the test's program. In that process Trial exits.
func Trial() { intake.Trial() }
