// The program that draws the dashboard of config/monitoring; see test/dashboard.
module github.com/openshift-agent/cluster-api-provider-openshift-agent/test/tools/dashboard

go 1.26.0

require github.com/go-analyze/charts v0.6.4

require (
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-analyze/bulk v0.1.6 // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	golang.org/x/image v0.45.0 // indirect
)
