// Only the CRDs of the Bare Metal Operator are used, none of its code: this file is not for "go mod tidy".
module github.com/openshift-agent/cluster-api-provider-openshift-agent/test/tools/baremetal-operator

go 1.26.0

require github.com/metal3-io/baremetal-operator v0.13.2
