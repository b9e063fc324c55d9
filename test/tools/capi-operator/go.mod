// Only the CRDs of the Cluster API operator are used, none of its code: this file is not for "go mod tidy".
module github.com/openshift-agent/cluster-api-provider-openshift-agent/test/tools/capi-operator

go 1.26.5

require sigs.k8s.io/cluster-api-operator v0.28.0
