// Package v1beta1 has the kinds Agent, InfraEnv and NMStateConfig of agent-install.openshift.io/v1beta1, reduced to the
// fields that this project reads or writes. Decoding drops all other fields: write these kinds with patches or
// server-side apply only, never with updates.
//
// Fields, states and reasons are from https://github.com/openshift/assisted-service, packages api/v1beta1 and models. These
// Go packages are not imported. The first contains admission webhooks, which do not compile with controller-runtime v0.23
// or newer. The second imports a database and a REST framework. TestAgentInstallFields compares the fields with the
// CustomResourceDefinitions of assisted-service.
//
// +kubebuilder:object:generate=true
package v1beta1
