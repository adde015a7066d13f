function ReviseReplica(desiredObj, desiredReplica)
  check(desiredObj, desiredReplica)
  local at = desiredObj
  for i = 1, #replicasPath - 1 do
    if at[replicasPath[i]] == nil then
      at[replicasPath[i]] = {}
    end
    at = at[replicasPath[i]]
    if not object(at) then
      error(replicasPath[i] .. " must be an object", 0)
    end
  end
  at[replicasPath[#replicasPath]] = desiredReplica
  return desiredObj
end
