# To be sourced: phase NAME COMMAND... runs a command between two lines that say what it was and how long it took. Of a function that
# it runs, every step has to say itself what a failure means: errexit is off there.
phase() {
	local name=$1 begin=$SECONDS status=0
	shift
	printf '=== %s %s\n' "$(date -u +%H:%M:%S)" "$name"
	"$@" || status=$?
	printf '=== %s %s took %ds\n' "$(date -u +%H:%M:%S)" "$name" "$((SECONDS - begin))"
	return "$status"
}
