// Package workflows tests the files of the folder .github: the workflows, the issue forms, the owners of the code and
// the configuration of Dependabot. The Makefile builds actionlint, which checks the syntax of the workflows, from the
// same module.
package workflows
