package desired

import "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"

var factsOf = sample.Facts
