package etcdmember

import "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"

var runningEtcd, noon = sample.RunningEtcd, sample.Noon
