// Package docs reads the documents of the repository: README.md, the other documents in its folder, and docs/. Tests
// compare the documents with the code.
package docs
