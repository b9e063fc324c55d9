// Package providers runs the conformance suite on the providers of this repository, in the laboratory.
package providers
