local function check(manifest, n)
  local total = unitedReplicas(manifest)
  if total ~= nil and total ~= n then
    error("all subsets have numbers of replicas, which sum up to " .. total .. ", so that OpenKruise refuses " .. n
      .. "; give percentages, or leave replicas of one subset out", 0)
  end
end
