// Only the CRDs of the Metal3 IP address manager are used, none of its code: this file is not for "go mod tidy".
module github.com/openshift-agent/cluster-api-provider-openshift-agent/test/tools/ipam

go 1.26.0

require github.com/metal3-io/ip-address-manager v1.13.2
