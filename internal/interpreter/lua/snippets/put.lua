local function put(at, path, v)
  for i = 1, #path - 1 do
    local step, below = path[i], nil
    if type(step) == "table" then
      for _, element in ipairs(at) do
        if element[step.by] == step.is then
          below = element
        end
      end
      if below == nil then
        below = {[step.by] = step.is}
        at[#at + 1] = below
      end
    else
      below = at[step]
      if below == nil then
        below = {}
        at[step] = below
      end
    end
    at = below
  end
  at[path[#path]] = v
end
