// Package docs reads the documents of the repository (README.md and the others beside it, and docs/), for tests that
// hold them against what they describe.
package docs
